// The list of steps: steps that are done get a mark.

import { tickLinks, tickMenu } from "./ticks.js";

tickLinks("article td:first-child a[href]", "✓ done");
tickMenu();
