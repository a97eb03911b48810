"""One small language for filters, rules and alerts: `lexer` and `boolean` are the grammar that they share."""
