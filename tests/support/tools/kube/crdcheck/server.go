package main

import (
	"context"

	"k8s.io/apiextensions-apiserver/pkg/apis/apiextensions"
	"k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/install"
	structuralschema "k8s.io/apiextensions-apiserver/pkg/apiserver/schema"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/defaulting"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/pruning"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/validation"
	"k8s.io/apiextensions-apiserver/pkg/registry/customresource"
	"k8s.io/apiextensions-apiserver/pkg/registry/customresourcedefinition"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/apimachinery/pkg/util/json"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/apiserver/pkg/registry/rest"
)

var scheme = func() *runtime.Scheme {
	types := runtime.NewScheme()
	install.Install(types)
	return types
}()

// create judges a definition as the API server does at its creation: structural schema, defaults that fit it, CEL
// expressions that compile and keep within the cost limits.
func create(text []byte) (*apiextensions.CustomResourceDefinition, field.ErrorList, error) {
	strict := serializer.NewCodecFactory(scheme, serializer.EnableStrict).UniversalDecoder(apiextensions.SchemeGroupVersion)
	object, err := runtime.Decode(strict, text)
	if err != nil {
		return nil, nil, err
	}
	definition := object.(*apiextensions.CustomResourceDefinition)
	ctx := context.Background()
	strategy := customresourcedefinition.NewStrategy(scheme)
	strategy.PrepareForCreate(ctx, definition)
	return definition, strategy.Validate(ctx, definition), nil
}

// served is a definition in use: its only version, ready to judge objects.
type served struct {
	structural *structuralschema.Structural
	strategy   rest.RESTCreateStrategy
}

func serve(definition *apiextensions.CustomResourceDefinition) (*served, error) {
	version := definition.Spec.Versions[0]
	declared, err := apiextensions.GetSchemaForVersion(definition, version.Name)
	if err != nil {
		return nil, err
	}
	structural, err := structuralschema.NewStructural(declared.OpenAPIV3Schema)
	if err != nil {
		return nil, err
	}
	if err := defaulting.PruneDefaults(structural); err != nil {
		return nil, err
	}
	validator, _, err := validation.NewSchemaValidator(declared.OpenAPIV3Schema)
	if err != nil {
		return nil, err
	}
	subresources, err := apiextensions.GetSubresourcesForVersion(definition, version.Name)
	if err != nil {
		return nil, err
	}
	kind := schema.GroupVersionKind{
		Group: definition.Spec.Group, Version: version.Name, Kind: definition.Spec.Names.Kind,
	}
	strategy := customresource.NewStrategy(
		scheme, true, kind, validator, nil, structural, subresources.Status, subresources.Scale, nil,
	)
	return &served{structural, strategy}, nil
}

// create judges one object: pruned and defaulted as on its way through the request path, then validated.
func (kind *served) create(text []byte) (*verdict, error) {
	object := &unstructured.Unstructured{}
	if err := json.Unmarshal(text, &object.Object); err != nil {
		return nil, err
	}
	object.SetNamespace("default") // the request path takes it from the URL
	unknown := pruning.PruneWithOptions(
		object.Object, kind.structural, true,
		structuralschema.UnknownFieldPathOptions{TrackUnknownFieldPaths: true},
	)
	defaulting.PruneNonNullableNullsWithoutDefaults(object.Object, kind.structural)
	defaulting.Default(object.Object, kind.structural)
	errs := kind.strategy.Validate(context.Background(), object)
	return &verdict{Errors: problems(errs), Unknown: unknown, Object: object.Object}, nil
}
