//! plugin-quota
