// Placeholder of the module SoraSCTP until its first type lands.
