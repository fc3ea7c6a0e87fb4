// Command bundle validates an OLM bundle with the validators of operator-framework that need no network, and prints
// errors and warnings, one per line. It exits with 1 if there are errors.
package main

import (
	"fmt"
	"os"

	"github.com/operator-framework/api/pkg/manifests"
	"github.com/operator-framework/api/pkg/validation"
	validator "github.com/operator-framework/api/pkg/validation/interfaces"
)

func main() {
	bundle, err := manifests.GetBundleFromDir(os.Args[1])
	if err != nil {
		fmt.Println("Error:", err)
		os.Exit(1)
	}
	validators := append(validator.Validators{
		validation.GoodPracticesValidator,
		validation.OperatorHubV2Validator,
		validation.StandardCapabilitiesValidator,
		validation.StandardCategoriesValidator,
	}, validation.DefaultBundleValidators...)
	failed := false
	for _, result := range validators.Validate(bundle.ObjectsToValidate()...) {
		for _, warning := range result.Warnings {
			fmt.Println(warning)
		}
		for _, problem := range result.Errors {
			fmt.Println(problem)
			failed = true
		}
	}
	if failed {
		os.Exit(1)
	}
}
