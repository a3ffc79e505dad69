"""Training: the decision process as environments, and controllers learned in them (extra: train).

`setting` alone can be imported without torch.
"""
