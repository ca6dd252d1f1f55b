"""What of the centers can be imported and exported: columns, and how a row is found."""
