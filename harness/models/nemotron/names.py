"""Tensor names of the released checkpoints, in the stock backbone's words."""


def stock_name(released: str) -> str:
    """`encoder.` becomes `model.`, `diffusion_head.` becomes `lm_head.`; a leading `model.` is passed over."""
    name = released.removeprefix("model.")
    if name.startswith("encoder."):
        return "model." + name.removeprefix("encoder.")
    if name.startswith("diffusion_head."):
        return "lm_head." + name.removeprefix("diffusion_head.")
    return released


def backbone_name(released: str) -> str | None:
    """The stock name of a tensor of the backbone; None for what a text model without adapters does not need."""
    if released.endswith("inv_freq") or "lora_" in released or "linear_spec" in released:
        return None
    return stock_name(released.replace(".base_layer.", "."))
