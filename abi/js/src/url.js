import { publish } from "covel:kernel";
import { URL, URLSearchParams } from "whatwg-url";
publish("covel:url", { URL, URLSearchParams });
