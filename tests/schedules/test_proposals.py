"""Which branch the next draft is from: said by the host, and by the device before the host knows."""

import pytest
import torch

from schedules import Proposals


@pytest.mark.parametrize("branches", [[0], [0, 1, 2, 3], [0, 2], [0, 1, 3]])
def test_the_device_finds_the_branch_that_the_host_will_look_at(branches):
    logits = torch.randn(len(branches), 4, 6, generator=torch.Generator().manual_seed(0))
    proposals = Proposals(logits, branches, [2] * len(branches))
    for accepted_drafts in range(4):
        emitted = accepted_drafts + 1
        found = proposals.freshest(torch.tensor([accepted_drafts]))
        assert found[proposals.resolved(emitted) :].tolist() == proposals.after(emitted).tolist()
