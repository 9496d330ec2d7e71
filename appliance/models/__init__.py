"""Import and export of models.

`import_model` registers base models, `export_model` writes published models as folders, `gguf` as GGUF files.
Publishing trained models is `appliance.learning.checkpoints`.
"""
