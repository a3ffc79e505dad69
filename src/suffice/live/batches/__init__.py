"""Many questions: asked within limits, and kept in a journal as they are answered."""
