import type { Adapter } from './adapter.ts'
import { granite } from './granite.ts'
import { llamaGuard } from './llama-guard.ts'
import { openai } from './openai.ts'
import { qwenGuard } from './qwen-guard.ts'
import { safeguard } from './safeguard.ts'
import { scripted } from './scripted.ts'
import { shieldgemma } from './shieldgemma.ts'

export const adapterNames = [
  'openai',
  'llama_guard',
  'shieldgemma',
  'granite',
  'safeguard',
  'qwen_guard',
  'scripted',
] as const
export type AdapterName = (typeof adapterNames)[number]

export const adapters: Readonly<Record<AdapterName, Adapter>> = {
  openai,
  llama_guard: llamaGuard,
  shieldgemma,
  granite,
  safeguard,
  qwen_guard: qwenGuard,
  scripted,
}
