"""What everything else stands on: errors, time, ids, durable writes, processes, text, redaction, git."""
