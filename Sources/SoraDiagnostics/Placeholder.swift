// Placeholder of the module SoraDiagnostics until its first type lands.
