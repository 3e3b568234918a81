/**
 * Ends a run with one plain line, `N passed, N failed, N skipped`, after naming every test that was
 * skipped and why: a test that cannot run here must not look like one that passed.
 */
import type { Reporter, TestModule } from 'vitest/node';

export default class SummaryReporter implements Reporter {
  onTestRunEnd(modules: readonly TestModule[]): void {
    const counts = { passed: 0, failed: 0, skipped: 0 };
    const skipped: string[] = [];
    for (const module of modules) {
      // A file that cannot be loaded has no tests, and is a failure all the same.
      if (module.errors().length > 0) counts.failed++;
      for (const test of module.children.allTests()) {
        const result = test.result();
        if (result.state === 'passed') counts.passed++;
        else if (result.state === 'failed') counts.failed++;
        else {
          counts.skipped++;
          const reason = (result.state === 'skipped' && result.note) || reasonInName(test.fullName);
          skipped.push(`skipped: ${module.relativeModuleId}: ${test.fullName}: ${reason}`);
        }
      }
    }
    for (const line of skipped) process.stdout.write(`${line}\n`);
    const { passed, failed } = counts;
    process.stdout.write(`\n${passed} passed, ${failed} failed, ${counts.skipped} skipped\n`);
  }
}

/** Conditional skips carry the reason in brackets in their name or in that of their group. */
function reasonInName(name: string): string {
  return /\(((?:needs|no|not|without|skipped) [^()]+)\)/.exec(name)?.[1] ?? 'not selected';
}
