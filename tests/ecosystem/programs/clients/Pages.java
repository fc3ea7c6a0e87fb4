// Java Operator SDK: a ConfigMap for each Page.
import io.fabric8.kubernetes.api.model.ConfigMapBuilder;
import io.fabric8.kubernetes.api.model.Namespaced;
import io.fabric8.kubernetes.client.CustomResource;
import io.fabric8.kubernetes.model.annotation.Group;
import io.fabric8.kubernetes.model.annotation.Plural;
import io.fabric8.kubernetes.model.annotation.Version;
import io.javaoperatorsdk.operator.Operator;
import io.javaoperatorsdk.operator.api.reconciler.Context;
import io.javaoperatorsdk.operator.api.reconciler.ControllerConfiguration;
import io.javaoperatorsdk.operator.api.reconciler.Reconciler;
import io.javaoperatorsdk.operator.api.reconciler.UpdateControl;

public class Pages {
  public static class Spec { public String text; }
  public static class Status { public String seen; }

  @Group("example.dev") @Version("v1") @Plural("pages")
  public static class Page extends CustomResource<Spec, Status> implements Namespaced {}

  @ControllerConfiguration
  public static class PageReconciler implements Reconciler<Page> {
    public UpdateControl<Page> reconcile(Page page, Context<Page> context) {
      context.getClient().resource(new ConfigMapBuilder().withNewMetadata().withName(page.getMetadata().getName())
          .withNamespace("default").endMetadata().addToData("text", page.getSpec().text).build()).serverSideApply();
      Status status = new Status();
      status.seen = page.getSpec().text;
      page.setStatus(status);
      return UpdateControl.patchStatus(page);
    }
  }

  public static void main(String[] arguments) {
    Operator operator = new Operator();
    operator.register(new PageReconciler());
    operator.start();
  }
}
