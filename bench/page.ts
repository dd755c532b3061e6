/** `docs/benchmarks.md`: the queues first, then the letters. Either part is rewritten without touching the other. */
import { readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'

const file = join(import.meta.dirname, '../docs/benchmarks.md')
const lettersTitle = '\n## Letters\n'

const today = () => new Date().toISOString().slice(0, 10)

/** Replaces everything before the letters. */
export async function writeQueues(text: string): Promise<void> {
  const taken = `Taken on ${today()} with \`npm run bench -- --write\`; see [bench/README.md](../bench/README.md) for what is measured and how.`
  const { letters } = await parts()
  await writeFile(file, `# Benchmarks\n\n${taken}\n\n${text}\n${letters}`)
}

/** Replaces the part about letters, or adds it. */
export async function writeLetters(text: string): Promise<void> {
  const { queues } = await parts()
  const taken = `Taken on ${today()} with \`npm run bench -- letters --write\`.`
  await writeFile(file, `${queues}${lettersTitle}\n${taken}\n\n${text}\n`)
}

async function parts(): Promise<{ queues: string; letters: string }> {
  const text = await readFile(file, 'utf8')
  const at = text.indexOf(lettersTitle)
  return at < 0 ? { queues: text, letters: '' } : { queues: text.slice(0, at), letters: text.slice(at) }
}
