import type { DataFolder } from './data-folder.ts'

type Task = { src: 'seed' | 'user' | 't0'; prompt: string; output?: string }

/** Of the many tasks of one kind, every fifth is held out. */
const heldOutEvery = 5

/** Ordinary tasks and their answers: those to train on, and those that only measure how many are blocked. */
export function readBenignTexts(data: DataFolder): { training: string[]; heldOut: string[] } {
  const training: string[] = []
  const heldOut: string[] = []
  let templates = 0
  for (const line of data.lines('benign-instructions/benign.jsonl')) {
    const { src, prompt, output } = JSON.parse(line) as Task
    const answers = output ? [output] : []
    if (src === 'user') heldOut.push(prompt, ...answers)
    else if (src === 'seed') training.push(prompt, ...answers)
    else (templates++ % heldOutEvery === 0 ? heldOut : training).push(prompt)
  }
  return { training, heldOut }
}
