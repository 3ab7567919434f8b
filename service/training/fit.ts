import { bucketCount, extractFeatures, type TextFeatures } from '#moderation/local/features.ts'
import { type Head, heads, type Model } from '#moderation/local/model.ts'
import { readText } from '#moderation/local/read-text.ts'

import { createRandom } from './random.ts'
import type { TrainingRow } from './training-row.ts'

const epochs = 6
/** The weights of the last epochs are averaged: single rows decide less, which matters where positives are few. */
const averagedEpochs = 3
const learningRate = 0.5
const biasRate = 0.02
const decay = 2e-6
const shuffleSeed = 5
/** Errors below this teach next to nothing, and most rows are soon there. */
const errorMin = 1e-4
/** Positives are rare: one counts as much as this many negatives, at most. */
const positiveWeightMax = 20

type Weights = Omit<Model, 'terms'>
type Example = TrainingRow & { readonly features: TextFeatures }

/** One logistic regression per head, fitted with AdaGrad and rounded to eight bits. The same rows give the same weights. */
export function fitWeights(rows: readonly TrainingRow[]): Weights {
  const examples = rows.map((row) => {
    const { text, bounds } = readText(row.text)
    return { ...row, features: extractFeatures(text, bounds) }
  })
  const fitted = heads.map((head) => fitHead(head, examples))
  const weights = new Int8Array(heads.length * bucketCount)
  const scales = Float32Array.from(fitted, (one) => largest(one.weights) / 127 || 1)
  for (const [index, one] of fitted.entries()) {
    const scale = scales[index] ?? 1
    for (let bucket = 0; bucket < bucketCount; bucket++) {
      weights[bucket * heads.length + index] = Math.round((one.weights[bucket] ?? 0) / scale)
    }
  }
  return { scales, biases: Float32Array.from(fitted, (one) => one.bias), weights }
}

const largest = (weights: Float32Array) =>
  weights.reduce((most, weight) => Math.max(most, Math.abs(weight)), 0)

function fitHead(head: Head, examples: readonly Example[]) {
  const known = examples.filter(({ labels }) => labels[head] !== undefined)
  const positiveWeight = weighPositives(head, known)
  const state = {
    weights: new Float32Array(bucketCount),
    squares: new Float32Array(bucketCount).fill(1e-3),
    bias: 0,
  }
  const average = { weights: new Float32Array(bucketCount), bias: 0 }
  const random = createRandom(shuffleSeed)
  const order = [...known]
  for (let epoch = 1; epoch <= epochs; epoch++) {
    shuffle(order, random)
    for (const { features, labels, weight } of order) {
      const label = labels[head] ?? 0
      const error = predict(state, features) - label
      learn(state, features, error * weight * (label === 1 ? positiveWeight : 1))
    }
    if (epoch > epochs - averagedEpochs) addShare(average, state)
  }
  return average
}

type Fitted = { weights: Float32Array; bias: number }

function addShare(average: Fitted, { weights, bias }: Fitted): void {
  for (const [bucket, weight] of weights.entries()) {
    average.weights[bucket] = (average.weights[bucket] ?? 0) + weight / averagedEpochs
  }
  average.bias += bias / averagedEpochs
}

function weighPositives(head: Head, known: readonly Example[]): number {
  const sumOf = (label: 0 | 1) =>
    known.reduce((sum, row) => (row.labels[head] === label ? sum + row.weight : sum), 0)
  return Math.min(positiveWeightMax, Math.max(1, Math.sqrt(sumOf(0) / (sumOf(1) || 1))))
}

type HeadState = Fitted & { squares: Float32Array }

function predict({ weights, bias }: HeadState, { buckets, values }: TextFeatures): number {
  let sum = bias
  for (let index = 0; index < buckets.length; index++) {
    sum += (weights[buckets[index] ?? 0] ?? 0) * (values[index] ?? 0)
  }
  return 1 / (1 + Math.exp(-sum))
}

function learn(state: HeadState, { buckets, values }: TextFeatures, slope: number): void {
  if (Math.abs(slope) < errorMin) return
  const { weights, squares } = state
  state.bias -= biasRate * slope
  for (let index = 0; index < buckets.length; index++) {
    const bucket = buckets[index] ?? 0
    const weight = weights[bucket] ?? 0
    const gradient = slope * (values[index] ?? 0) + decay * weight
    const square = (squares[bucket] ?? 0) + gradient * gradient
    squares[bucket] = square
    weights[bucket] = weight - (learningRate * gradient) / Math.sqrt(square)
  }
}

function shuffle(list: unknown[], random: () => number): void {
  for (let last = list.length - 1; last > 0; last--) {
    const other = Math.floor(random() * (last + 1))
    const kept = list[last]
    list[last] = list[other]
    list[other] = kept
  }
}
