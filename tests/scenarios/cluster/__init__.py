"""The model that the stories play in: one cluster in manifests, and a GPU fleet that answers what the operator plans.

- names, times, profile_texts, expectations: values and words that all of it uses;
- objects: the manifests, as an API server keeps them;
- operator_objects, plugin_installation, profile_config_map, nodes, pods: what there is in the cluster, and what people do
  to it, a subject each;
- reactions: what the DaemonSet controller, the sidecars, the plugin, GFD and the kubelet make of that;
- program, plans, looks, actions: asking the operator, reading its plan, and applying it as an API server would;
- cluster: `Cluster`, which joins these parts, and `fleet`.

Stories import from `scenario`, not from here.
"""
