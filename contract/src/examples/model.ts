import type * as contract from '../model.ts'
import type { ExampleOf } from './example.ts'

const model: contract.Model = {
  id: 'example-large',
  object: 'model',
  type: 'model',
  created: 1_792_800_000,
  created_at: '2026-10-24T00:00:00Z',
  owned_by: 'example',
  display_name: 'Example Large',
  aliases: ['example'],
  context_tokens: 200_000,
  max_output_tokens: 64_000,
  pricing: { input: '3', output: '15', cached_input: '0.3', cache_write: '3.75' },
  capabilities: { tools: true, images: true, documents: true, reasoning: true, json_schema: true },
}

const list = {
  object: 'list' as const,
  data: [model],
  has_more: false as const,
  first_id: model.id,
  last_id: model.id,
}

export const modelExamples = {
  listModels: { answer: list } satisfies ExampleOf<typeof contract.listModels>,
  listOrganizationModels: {
    answer: list,
  } satisfies ExampleOf<typeof contract.listOrganizationModels>,
  retrieveModel: {
    params: { model_id: model.id },
    answer: model,
  } satisfies ExampleOf<typeof contract.retrieveModel>,
}
