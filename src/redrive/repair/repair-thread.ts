/** The thread in which letters are repaired, one after the other. Its process (repair-process.ts) ends it when a letter's time is up. */
import { setImmediate } from 'node:timers/promises'
import { parentPort } from 'node:worker_threads'
import { applyRecipe, type LetterContent, type RepairResult } from './apply-recipe.ts'
import { type Recipe, readRecipe } from './recipe.ts'

export interface RepairTerms {
  /** The thread stops when these are over and one letter is done. */
  readonly forMs: number
  /** False: new payloads are measured and dropped. */
  readonly keepsPayloads: boolean
}

export interface RepairRequest extends RepairTerms {
  /** As stored; null: that of the request before. */
  readonly recipe: string | null
  readonly letters: readonly LetterContent[]
}

export type RepairedLetter = RepairResult & {
  /** Of the processor, however busy the machine is. */
  readonly workMs: number
  readonly growthBytes: number
}

export type ThreadAnswer =
  | { readonly kind: 'ready' }
  | { readonly kind: 'letter'; readonly letter: RepairedLetter }
  | { readonly kind: 'end' }

if (parentPort === null) throw new Error('letters are repaired in a thread')
const port = parentPort
const answer = (message: ThreadAnswer): void => port.postMessage(message)

// A mapping must not reach the machinery behind a value by its name.
Reflect.deleteProperty(Object.prototype, '__proto__')
for (const one of [() => {}, async () => {}, function* () {}, async function* () {}]) {
  Reflect.deleteProperty(Object.getPrototypeOf(one), 'constructor')
}

let recipe: Recipe | null = null

async function repairAll({ recipe: text, letters, forMs, keepsPayloads }: RepairRequest): Promise<void> {
  if (text !== null) recipe = readRecipe(text)
  if (recipe === null) throw new Error('the first request has no recipe')
  const startedMs = performance.now()
  for (const letter of letters) {
    answer({ kind: 'letter', letter: await repairOne(recipe, letter, keepsPayloads) })
    // Branches of an expression that outlive another's failure end before the next letter.
    await setImmediate()
    if (performance.now() - startedMs > forMs) break
  }
  answer({ kind: 'end' })
}

async function repairOne(
  recipe: Recipe,
  letter: LetterContent,
  keepsPayloads: boolean,
): Promise<RepairedLetter> {
  const before = process.threadCpuUsage()
  const result = await applyRecipe(recipe, letter)
  const { user, system } = process.threadCpuUsage(before)
  const payload = result.ok ? result.repaired.payload : null
  const growthBytes = payload === null ? 0 : payload.length - letter.payload.length
  const cost = { workMs: (user + system) / 1_000, growthBytes }
  if (!result.ok || keepsPayloads) return { ...result, ...cost }
  return { ok: true, repaired: { ...result.repaired, payload: null }, ...cost }
}

port.on('message', repairAll)
answer({ kind: 'ready' })
