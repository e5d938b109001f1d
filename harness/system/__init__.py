"""The machine: clocks, devices, memory, signals, the hub: the only room that asks it."""
