// The page of one attack.

import { startPage } from "./jobs_page.js";

startPage([""], ["job"]);
