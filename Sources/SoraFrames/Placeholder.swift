// Placeholder of the module SoraFrames until its first type lands.
