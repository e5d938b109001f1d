"""Work: plans, runs, replays, atlases, sweeps; it returns values and tells an observer how far it is."""
