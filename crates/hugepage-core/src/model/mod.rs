//! The facts about a server and its host as types: what assessments take and what collectors fill in.

pub mod cause;
pub mod landing;
pub mod server;
