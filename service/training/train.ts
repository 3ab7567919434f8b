import { encodeModel } from '#moderation/local/model.ts'

import type { DataFolder } from './data-folder.ts'
import { fitWeights } from './fit.ts'
import { readSexualTerms } from './lexicon.ts'
import { readTrainingRows } from './training-rows.ts'

/** The bytes of the model. The same data give the same bytes, on the Node version that `./dev` installs. */
export function trainModel(data: DataFolder): Buffer {
  const weights = fitWeights(readTrainingRows(data))
  return encodeModel({ ...weights, terms: readSexualTerms(data) })
}
