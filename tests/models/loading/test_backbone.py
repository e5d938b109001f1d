"""What a forward pass has to read of a backbone."""

from harness.models.loading.backbone import cache_bytes, parameters_of, weight_bytes
from tests.builders.nemotron import random_backbone
from tests.builders.setdlm import random_backbone as random_setdlm_backbone


def test_embeddings_are_read_only_where_they_are_the_head_too():
    tied, untied = random_setdlm_backbone(0), random_backbone(0)
    assert tied.config.tie_word_embeddings
    assert not untied.config.tie_word_embeddings
    assert weight_bytes(tied) == 4 * parameters_of(tied)
    assert weight_bytes(untied) == 4 * (parameters_of(untied) - untied.model.embed_tokens.weight.numel())


def test_a_cached_token_is_keys_and_values_of_all_layers():
    backbone = random_backbone(0)
    config = backbone.config
    per_layer = sum(
        projection.out_features
        for projection in (backbone.model.layers[0].self_attn.k_proj, backbone.model.layers[0].self_attn.v_proj)
    )
    assert cache_bytes(backbone) == 4 * config.num_hidden_layers * per_layer
