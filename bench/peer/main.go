// peer is the Go controller that `./dev bench fleet --real` compares the operator with: it makes the labels of every
// Node equal to the data of one ConfigMap, by one merge patch for each Node that differs, and does nothing else. It is
// written as the maintainers of controller-runtime recommend: typed caches with a transform that strips what is not
// read, the priority queue, sources that are warm before the election, and no rate limit in the client.
package main

import (
	"context"
	"flag"
	"fmt"
	"maps"
	"os"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/config"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/log/zap"
	"sigs.k8s.io/controller-runtime/pkg/metrics/server"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
)

// strip keeps of a Node what Reconcile reads and what a precondition needs.
func strip(object any) (any, error) {
	if node, ok := object.(*corev1.Node); ok {
		node.ObjectMeta = metav1.ObjectMeta{
			Name: node.Name, UID: node.UID, ResourceVersion: node.ResourceVersion, Labels: node.Labels,
			DeletionTimestamp: node.DeletionTimestamp,
		}
		node.Spec, node.Status = corev1.NodeSpec{}, corev1.NodeStatus{}
	}
	return object, nil
}

type labeler struct {
	client client.Client
	input  types.NamespacedName
}

func (l *labeler) Reconcile(ctx context.Context, request ctrl.Request) (ctrl.Result, error) {
	var wanted corev1.ConfigMap
	if err := l.client.Get(ctx, l.input, &wanted); err != nil {
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	var node corev1.Node
	if err := l.client.Get(ctx, request.NamespacedName, &node); err != nil {
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	before := node.DeepCopy()
	if node.Labels == nil {
		node.Labels = map[string]string{}
	}
	maps.Copy(node.Labels, wanted.Data)
	if maps.Equal(before.Labels, node.Labels) {
		return ctrl.Result{}, nil
	}
	// The resourceVersion is a precondition, as in the operator's patches that begin a change.
	patch := client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{})
	return ctrl.Result{}, l.client.Patch(ctx, &node, patch)
}

// allNodes maps the ConfigMap to the Nodes that depend on it.
func (l *labeler) allNodes(ctx context.Context, _ client.Object) []ctrl.Request {
	var nodes corev1.NodeList
	if err := l.client.List(ctx, &nodes, client.UnsafeDisableDeepCopy); err != nil {
		ctrl.LoggerFrom(ctx).Error(err, "could not list Nodes from the cache")
		return nil
	}
	requests := make([]ctrl.Request, 0, len(nodes.Items))
	for i := range nodes.Items {
		requests = append(requests, ctrl.Request{NamespacedName: types.NamespacedName{Name: nodes.Items[i].Name}})
	}
	return requests
}

// announcer logs when the caches are filled, whether this process leads or stands by.
type announcer struct{ cache cache.Cache }

func (announcer) NeedLeaderElection() bool { return false }

func (a announcer) Start(ctx context.Context) error {
	for _, kind := range []client.Object{&corev1.Node{}, &corev1.ConfigMap{}} {
		if _, err := a.cache.GetInformer(ctx, kind); err != nil {
			return err
		}
	}
	ctrl.Log.Info("caches synced")
	return nil
}

func run() error {
	workers := flag.Int("workers", 1, "how many Nodes are reconciled at once")
	namespace := flag.String("namespace", "peer", "where the ConfigMap and the Lease are")
	name := flag.String("configmap", "labels", "the ConfigMap with the labels that every Node gets")
	metrics := flag.String("metrics-bind-address", "0", "where /metrics is served")
	flag.Parse() // --kubeconfig comes from controller-runtime.
	ctrl.SetLogger(zap.New())

	restConfig, err := ctrl.GetConfig()
	if err != nil {
		return err
	}
	restConfig.QPS = -1
	restConfig.UserAgent = fmt.Sprintf("peer-%d", *workers)
	yes := true
	onlyInput := cache.ByObject{
		Namespaces: map[string]cache.Config{*namespace: {}},
		Field:      fields.OneTermEqualSelector("metadata.name", *name),
	}
	mgr, err := ctrl.NewManager(restConfig, ctrl.Options{
		Cache: cache.Options{ByObject: map[client.Object]cache.ByObject{
			&corev1.Node{}:      {Transform: strip},
			&corev1.ConfigMap{}: onlyInput,
		}},
		Controller: config.Controller{
			MaxConcurrentReconciles: *workers, UsePriorityQueue: &yes, EnableWarmup: &yes,
		},
		LeaderElection: true, LeaderElectionID: "peer", LeaderElectionNamespace: *namespace,
		LeaderElectionReleaseOnCancel: true,
		Metrics:                       server.Options{BindAddress: *metrics},
	})
	if err != nil {
		return err
	}
	l := &labeler{mgr.GetClient(), types.NamespacedName{Namespace: *namespace, Name: *name}}
	err = ctrl.NewControllerManagedBy(mgr).
		// Heartbeats change no label: they are cached, and not reconciled.
		For(&corev1.Node{}, builder.WithPredicates(predicate.LabelChangedPredicate{})).
		Watches(&corev1.ConfigMap{}, handler.EnqueueRequestsFromMapFunc(l.allNodes)).
		Complete(l)
	if err != nil {
		return err
	}
	if err := mgr.Add(announcer{mgr.GetCache()}); err != nil {
		return err
	}
	return mgr.Start(ctrl.SetupSignalHandler())
}

func main() {
	if err := run(); err != nil {
		fmt.Fprintln(os.Stderr, "peer:", err)
		os.Exit(1)
	}
}
