// npm install ai@7 @ai-sdk/openai@4 @ai-sdk/otel@1 zod@4 @opentelemetry/api@1 @opentelemetry/sdk-trace-node@2
//   @opentelemetry/exporter-trace-otlp-proto@0 @opentelemetry/baggage-span-processor@0
//
// Vercel AI SDK 7 with its OpenTelemetry integration: after the installation above, `node vercel_ai_sdk.mjs`.
//
// Content is on by default. The scenario id is baggage, which a processor copies to every span. Spans go to OTEL_EXPORTER_OTLP_ENDPOINT,
// or else to http://localhost:4318; the model is the one at OPENAI_BASE_URL.

import { OpenTelemetry } from "@ai-sdk/otel";
import { openai } from "@ai-sdk/openai";
import { context, propagation } from "@opentelemetry/api";
import { BaggageSpanProcessor } from "@opentelemetry/baggage-span-processor";
import { OTLPTraceExporter } from "@opentelemetry/exporter-trace-otlp-proto";
import { BatchSpanProcessor, NodeTracerProvider } from "@opentelemetry/sdk-trace-node";
import { ToolLoopAgent, registerTelemetry, tool } from "ai";
import { z } from "zod";

const SCENARIO = "pathgauge.scenario.id";

const provider = new NodeTracerProvider({
  spanProcessors: [new BaggageSpanProcessor((key) => key === SCENARIO), new BatchSpanProcessor(new OTLPTraceExporter())],
});
provider.register();
registerTelemetry(new OpenTelemetry());

const agent = new ToolLoopAgent({
  model: openai(process.env.OPENAI_MODEL ?? "gpt-4.1-mini"),
  instructions: "You refund damaged items. Look the order up first.",
  telemetry: { functionId: "refund_agent" },
  tools: {
    lookup_order: tool({
      description: "Find an order by its id.",
      inputSchema: z.object({ order_id: z.string() }),
      execute: async ({ order_id }) => ({ order_id, item: "headphones", paid: 59.9 }),
    }),
    issue_refund: tool({
      description: "Pay an amount in euros back.",
      inputSchema: z.object({ order_id: z.string(), amount: z.number() }),
      execute: async ({ order_id, amount }) => ({ order_id, refunded: amount }),
    }),
  },
});

// In a service the id arrives in the request's `baggage` header.
const baggage = propagation.createBaggage({ [SCENARIO]: { value: "refund_damaged" } });
const prompt = "My headphones from order A-1042 arrived damaged, I want my money back.";
const result = await context.with(propagation.setBaggage(context.active(), baggage), () => agent.generate({ prompt }));
console.log(result.text);
await provider.shutdown();
