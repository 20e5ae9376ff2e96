"""The cost model: AST graph, features, graph network, baselines, metrics."""
