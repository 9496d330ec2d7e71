"""GPU self-test: probes of what only a GPU can show, run by `assay selftest gpu`.

`run` lists the rows and their results, `probes` and `ranks` are the probes, `probe_models` makes random models. Without
an NVIDIA GPU nothing heavy is loaded.
"""
