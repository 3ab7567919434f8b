import { createGenericModel } from './generic-model.ts'
import { createGraniteModel } from './granite-model.ts'
import type { JudgeModel, JudgeModelOptions } from './judge-model.ts'
import { createSafeguardModel } from './safeguard-model.ts'
import { createScriptedModel } from './scripted-model.ts'

export type JudgeAdapter = 'generic' | 'granite' | 'safeguard' | 'scripted'

const models = {
  generic: createGenericModel,
  granite: createGraniteModel,
  safeguard: createSafeguardModel,
  scripted: createScriptedModel,
} as const satisfies Record<JudgeAdapter, (options: JudgeModelOptions) => JudgeModel>

export const openJudgeModel = (adapter: JudgeAdapter, options: JudgeModelOptions): JudgeModel =>
  models[adapter](options)
