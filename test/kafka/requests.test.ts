import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { expect, it } from 'vitest'
import { FETCH_VERSIONS } from '../../src/sources/kafka/intake/reader-fetch.ts'

const FOLDERS = ['../../src/outgoing/kafka', '../../src/sources/kafka'].map((path) =>
  fileURLToPath(new URL(path, import.meta.url)),
)

/** Requests by name and version, as the sources call them. */
function requestsMade(): readonly string[] {
  const files = FOLDERS.flatMap((folder) =>
    readdirSync(folder, { recursive: true, encoding: 'utf8' }).map((name) => join(folder, name)),
  ).filter((name) => name.endsWith('.ts') && !name.endsWith('.test.ts'))
  const found = files.flatMap((file) => readFileSync(file, 'utf8').match(/(?<=\blibrary\.)\w+V\d+/g) ?? [])
  return [...new Set(found)].toSorted()
}

it('asks brokers from 2.7 to 4.x in versions that are pinned', () => {
  expect(requestsMade()).toEqual([
    'apiVersionsV3',
    'describeConfigsV4',
    'findCoordinatorV3',
    'heartbeatV4',
    'initProducerIdV3',
    'joinGroupV7',
    'leaveGroupV4',
    'listOffsetsV5',
    'metadataV12',
    'metadataV9',
    'offsetCommitV8',
    'offsetFetchV7',
    'produceV8',
    'syncGroupV5',
  ])
  expect(FETCH_VERSIONS).toEqual([17, 16, 15, 14, 13, 12])
})
