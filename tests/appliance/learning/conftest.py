from __future__ import annotations

import pytest
import torch


@pytest.fixture(autouse=True)
def one_thread() -> None:
    """Results are promised bit by bit for one number of threads."""
    torch.set_num_threads(1)
