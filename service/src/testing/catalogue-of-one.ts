import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'

import { onTestFinished } from 'vitest'

/** A catalogue with one model, `m`, that speaks Chat Completions and has these members too; it is removed when the test ends. */
export async function writeCatalogueOfOne(base_url: string, members = {}): Promise<string> {
  const folder = await mkdtemp(join(tmpdir(), 'gatehouse-catalogue-'))
  onTestFinished(() => rm(folder, { recursive: true }))
  const file = join(folder, 'models.json')
  const model = {
    id: 'm',
    context_tokens: 1000,
    max_output_tokens: 100,
    prices: { input: '1', output: '1' },
    upstreams: [{ upstream: 'only' }],
    ...members,
  }
  const only = { kind: 'openai', base_url, formats: ['chat_completions'] }
  await writeFile(file, JSON.stringify({ upstreams: { only }, models: [model] }))
  return file
}
