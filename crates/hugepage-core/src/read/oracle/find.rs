//! Where an instance keeps its alert log and its parameters.
