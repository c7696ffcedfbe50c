"""Text before any model: tokenisers and n-gram matching on integer arrays."""
