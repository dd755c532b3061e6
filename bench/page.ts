/** `docs/benchmarks.md`: the queues first, then the letters, then other parts. Each is rewritten without touching the others. */
import { readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'

const file = join(import.meta.dirname, '../docs/benchmarks.md')
const lettersTitle = '\n## Letters\n'

const today = () => new Date().toISOString().slice(0, 10)

/** Replaces everything before the letters. */
export async function writeQueues(text: string): Promise<void> {
  const taken = `Taken on ${today()} with \`npm run bench -- --write\`; see [bench/README.md](../bench/README.md) for what is measured and how.`
  const { letters, others } = await parts()
  await writeFile(file, `# Benchmarks\n\n${taken}\n\n${text}\n${letters}${others}`)
}

/** Replaces the part about letters, or adds it. */
export async function writeLetters(text: string): Promise<void> {
  const { queues, others } = await parts()
  const taken = `Taken on ${today()} with \`npm run bench -- letters --write\`.`
  await writeFile(file, `${queues}${lettersTitle}\n${taken}\n\n${text}\n${others}`)
}

async function parts(): Promise<{ queues: string; letters: string; others: string }> {
  const text = await readFile(file, 'utf8')
  const at = text.indexOf(lettersTitle)
  if (at < 0) return { queues: text, letters: '', others: '' }
  const next = text.indexOf('\n## ', at + lettersTitle.length)
  const end = next < 0 ? text.length : next
  return { queues: text.slice(0, at), letters: text.slice(at, end), others: text.slice(end) }
}
