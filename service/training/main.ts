import { readFileSync, writeFileSync } from 'node:fs'

import { readOptions, refuse } from '@gatehouse/tools/help/read-options'

import { describeModel, manifestFile, modelFile } from '#moderation/local/load-model.ts'
import { createLocalScorer } from '#moderation/local/local-scorer.ts'
import { decodeModel } from '#moderation/local/model.ts'

import { dataPath, openDataFolder, whyNoData } from './data-folder.ts'
import { readHeldOut } from './held-out.ts'
import { measureOverBlock, measureQuality, type QualityRow } from './quality.ts'
import { trainModel } from './train.ts'

// `./dev moderation train` writes the model of the local scorer, `./dev moderation evaluate` measures it. Both print
// numbers only, never a text.

function train(path: string): void {
  const bytes = trainModel(openDataFolder(path))
  const manifest = describeModel(bytes)
  writeFileSync(modelFile, bytes)
  writeFileSync(manifestFile, `${JSON.stringify(manifest, null, 2)}\n`)
  console.log(`Wrote a model of ${manifest.bytes} bytes with the SHA-256 ${manifest.sha256}.`)
}

const twoDigits = (value: number) => value.toFixed(2)
const percent = (share: number) => `${(share * 100).toFixed(1)} %`

function toLine(row: QualityRow): string {
  const { name, texts, positives, averagePrecision, rocArea } = row
  const figures = [averagePrecision, rocArea, row.recallAtOnePercent, row.recallAtThreshold]
  return `| ${[name, `${texts} / ${positives}`, ...figures.map(twoDigits)].join(' | ')} |`
}

function evaluate(path: string): void {
  // Not through loadModel: a model that was just trained for a try has no manifest that anybody has read.
  const { scoreText } = createLocalScorer(decodeModel(readFileSync(modelFile)))
  const heldOut = readHeldOut(openDataFolder(path))
  const columns = [
    'Texts',
    'n / positives',
    'AUPRC',
    'AUROC',
    'Recall at 1 % FPR',
    'Recall at 0.60',
  ]
  console.log(`| ${columns.join(' | ')} |\n|${columns.map(() => '---|').join('')}`)
  for (const row of measureQuality(scoreText, heldOut)) console.log(toLine(row))
  const { benign, safeLookingUnsafe } = heldOut
  const blocked = (texts: readonly string[]) => percent(measureOverBlock(scoreText, texts))
  console.log(`\nBlocked at 0.60: ${blocked(benign)} of ${benign.length} benign texts and`)
  console.log(`${blocked(safeLookingUnsafe)} of ${safeLookingUnsafe.length} safe XSTest prompts.`)
}

const commands: Record<string, (path: string) => void> = { train, evaluate }

function main(): number {
  const options = { data: { type: 'string' } } as const
  const { positionals, values } = readOptions('moderation', { options, allowPositionals: true })
  const [name = '', extra] = positionals
  const command = Object.hasOwn(commands, name) ? commands[name] : undefined
  if (!command || extra !== undefined) {
    const given = name && `, not '${positionals.join(' ')}'`
    return refuse('moderation', `It takes train or evaluate${given}.`)
  }
  const path = values.data ?? dataPath()
  const reason = whyNoData(path)
  if (reason !== undefined) console.error(reason)
  else command(path)
  return reason === undefined ? 0 : 1
}

process.exitCode = main()
