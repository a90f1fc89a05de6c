"""KIP-827 and KIP-1201: how full every volume is, in metrics, in ``/v1/state`` and in the log."""
