/** Programs on this machine. */
import { accessSync, constants, statSync } from 'node:fs';

/** Whether a file can be executed; a folder can be entered by the same bit, and is none. */
export function isProgram(file: string): boolean {
  try {
    accessSync(file, constants.X_OK);
    return statSync(file).isFile();
  } catch {
    return false;
  }
}
