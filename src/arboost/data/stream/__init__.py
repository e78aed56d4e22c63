"""Tables that come in batches -> bins: two passes over a source, in bounded memory."""
