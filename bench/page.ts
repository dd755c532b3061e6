/** `docs/benchmarks.md`: the queues first, then parts with a title of their own. Each is rewritten without touching the others. */
import { existsSync } from 'node:fs'
import { readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'

const file = join(import.meta.dirname, '../docs/benchmarks.md')
const today = () => new Date().toISOString().slice(0, 10)

/** Replaces everything before the first part with a title. */
export async function writeQueues(text: string): Promise<void> {
  const taken = `Taken on ${today()} with \`npm run bench -- --write\`; see [bench/README.md](../bench/README.md) for what is measured and how.`
  const page = await readFile(file, 'utf8')
  const at = page.indexOf('\n## ')
  await writeFile(file, `# Benchmarks\n\n${taken}\n\n${text}\n${at < 0 ? '' : page.slice(at)}`)
}

/** Replaces the part of a benchmark, or adds it. `name` is what it is called by. */
export async function writeBenchmark(title: string, name: string, text: string): Promise<void> {
  await writePart(
    title,
    `Taken on ${today()} with \`npm run bench -- ${name} --write\`; ${readmeOf(name)}\n\n${text}`,
  )
}

/** Letters and the console are told of in the page of all benchmarks. */
const readmeOf = (name: string): string => {
  const page = existsSync(join(import.meta.dirname, name, 'README.md'))
    ? `bench/${name}/README.md`
    : 'bench/README.md'
  return `see [${page}](../${page}) for what is measured and how.`
}

/** Replaces what stands below a title, or adds it at the end. */
async function writePart(title: string, text: string): Promise<void> {
  const { before, after } = await split(title)
  await writeFile(file, `${before}${heading(title)}\n${text}\n${after}`)
}

const ABOUT = 'Machine and method'

/**
 * Replaces sections of a part, and what is said about all of it; sections that were not measured stay as they are. `name` is what the
 * benchmark is called by.
 */
export async function writeSections(
  title: string,
  name: string,
  sections: readonly (readonly [title: string, text: string])[],
  about: string,
): Promise<void> {
  const kept = new Map(readSections((await split(title)).part))
  kept.delete(ABOUT)
  for (const [section, text] of sections) kept.set(section, `Taken on ${today()}.\n\n${text}`)
  kept.set(ABOUT, about)
  const command = `Taken with \`npm run bench -- ${name} --write\`; ${readmeOf(name)}`
  const all = [...kept].map(([section, text]) => `### ${section}\n\n${text}`)
  await writePart(title, [command, ...all].join('\n\n'))
}

function readSections(text: string): [title: string, text: string][] {
  return text
    .split('\n### ')
    .slice(1)
    .map((section) => {
      const end = section.indexOf('\n')
      return [section.slice(0, end), section.slice(end).trim()]
    })
}

const heading = (title: string): string => `\n## ${title}\n`

async function split(title: string): Promise<{ before: string; part: string; after: string }> {
  const page = await readFile(file, 'utf8')
  const at = page.indexOf(heading(title))
  if (at < 0) return { before: page, part: '', after: '' }
  const start = at + heading(title).length
  const next = page.indexOf('\n## ', start)
  const end = next < 0 ? page.length : next
  return { before: page.slice(0, at), part: page.slice(start, end), after: page.slice(end) }
}
