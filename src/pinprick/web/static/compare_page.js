// The page of two attacks on one picture.

import { startPage } from "./jobs_page.js";

startPage(["-0", "-1"], ["first", "second"]);
