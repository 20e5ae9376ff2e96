"""The store: schema as migrations, rows in and out, queries over history."""
