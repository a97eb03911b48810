"""Foreign captured traces to the contract, one file per format."""
