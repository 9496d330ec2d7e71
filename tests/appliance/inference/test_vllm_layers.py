"""A layer that took fewer numbers than a push has for it is found, by what vLLM itself counts, and no other layer."""

from __future__ import annotations

import json
import subprocess

import pytest
from vllm_engines import needs_vllm

from appliance.inference.vllm.placement import require_environment
from appliance.inference.vllm.process import ROOT

PROGRAM = """
import json, sys
sys.path.append(sys.argv[1])
import torch
from torch import nn
from vllm.model_executor.model_loader.reload import layerwise
from appliance.inference.vllm.server.worker import watched

class Scaled(nn.Module):
    def __init__(self):
        super().__init__()
        self.weight = nn.Parameter(torch.zeros(2))
        self.gain = nn.Parameter(torch.zeros(1))
        self.register_buffer("root", torch.ones(1), persistent=False)
        self.register_buffer("limit", torch.ones(1))

class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = Scaled()

    def load_weights(self, weights):
        own = dict(self.named_parameters()) | dict(self.named_buffers())
        for name, given in weights:
            own[name].weight_loader(own[name], given)

model = Model()
layerwise.record_metadata_for_reloading(model)
found = []
for names in json.loads(sys.argv[2]):
    with watched(model) as lacking:
        layerwise.initialize_layerwise_reload(model)
        model.load_weights([(f"layer.{name}", torch.ones(2 if name == "weight" else 1)) for name in names])
        layerwise.finalize_layerwise_reload(model, None)
    found.append(list(lacking))
print(json.dumps(found))
"""
"""With a layer that computes a buffer itself, and has another that a file may have."""


@needs_vllm
@pytest.mark.long_vllm
@pytest.mark.timeout(600)
def test_a_layer_lacks_parameters_and_not_what_it_computes_itself() -> None:
    pushes = {
        ("weight", "gain"): [],
        ("weight", "gain", "limit"): [],
        ("weight",): ["layer"],
        ("gain",): ["layer"],
        ("weight", "limit"): ["layer"],
        (): ["layer"],
    }
    ran = subprocess.run(
        [str(require_environment().python), "-c", PROGRAM, str(ROOT), json.dumps(list(pushes))],
        capture_output=True,
        text=True,
    )
    assert ran.returncode == 0, ran.stderr
    assert json.loads(ran.stdout.splitlines()[-1]) == list(pushes.values())
