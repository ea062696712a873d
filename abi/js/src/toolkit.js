// `covel.toolkit`, made when an entry first looks at it: most of an isolate's start is reading zod.
import { publish } from "covel:kernel";
import { shortId, shortIdBatch, tool, withPendingProposals, z } from "covel:toolkit";

publish("covel:offered-toolkit", { toolkit: Object.freeze({ tool, z, shortId, shortIdBatch, withPendingProposals }) });
