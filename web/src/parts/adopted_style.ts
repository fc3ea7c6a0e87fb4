// A style element that a strict Content-Security-Policy permits: its text becomes a constructed style sheet of the document.

class AdoptedStyle extends HTMLElement {
  readonly sheet = new CSSStyleSheet();

  override get textContent(): string {
    return "";
  }
  override set textContent(text: string | null) {
    this.sheet.replaceSync(text ?? "");
  }
  connectedCallback(): void {
    document.adoptedStyleSheets = [...document.adoptedStyleSheets, this.sheet];
  }
  disconnectedCallback(): void {
    document.adoptedStyleSheets = document.adoptedStyleSheets.filter((sheet) => sheet !== this.sheet);
  }
}

customElements.define("adopted-style", AdoptedStyle);
