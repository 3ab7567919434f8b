import type { ModelRequest } from '#inference/model-request.ts'

import type { MeteredUsage } from './meter.ts'

/** The tokens that count in the limits: an upstream's false report must not use up the limits of its caller. */
export const usedTokens = (
  { inputTokens, outputTokens }: MeteredUsage,
  { model, maxOutputTokens }: Pick<ModelRequest, 'model' | 'maxOutputTokens'>,
): number => Math.min(inputTokens, model.contextTokens) + Math.min(outputTokens, maxOutputTokens)
