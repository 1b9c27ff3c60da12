// Placeholder of the module SoraPeer until its first type lands.
