import { render } from "preact";
import { App } from "./app";
import { follow } from "./stream";
import "./styles/index.css";

render(<App />, document.getElementById("app")!);
void follow();
